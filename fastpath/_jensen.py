"""What one part adds to a Jensen-Shannon divergence, as plain arithmetic: no logarithm is taken for a pair.

With t = p + q twice the divergence of two closed rows is

    sum p ln p + sum q ln q + 2 ln 2 - sum t ln t,

and only the last sum is one over pairs. The logarithms of the rows are taken once; that of t is the larger of
the two and a polynomial: with t / max(p, q) = sqrt(2) (1 - s) / (1 + s), |s| <= 0.172, it is
ln max(p, q) + ln(2) / 2 - 2 artanh(s). The sums cancel where rows are close: an error of some eps times the
entropies stays. Close rows are summed by `jensen_close` instead, in which no part is negative and nothing
large cancels. The coefficients come from tests/generate_exp_log_coefficients.py.
"""

from __future__ import annotations

import numpy as np

from fastpath._jit import inlined_exact

__all__ = ["HALF_LN2", "LOG_ZERO", "SMALLEST", "jensen_close", "mixture"]

# 2 artanh(s) / s in s^2 for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1), constant term first
_CENTRED = (
    2.0000000000000027,
    0.6666666666634514,
    0.4000000011859103,
    0.28571409372609186,
    0.22223812024949743,
    0.1811165486323634,
    0.16945276576112314,
)
# the same for s <= 1 / 3
_WHOLE = (
    2.0,
    0.6666666666668267,
    0.39999999995264024,
    0.28571429113847385,
    0.22222190759518493,
    0.1818286245800217,
    0.1536363552941922,
    0.1359166895529297,
    0.09879040084442703,
    0.1778426938890089,
)
# g(a) / a^2 in a^2 for a <= 0.36, constant term first
_NEAR = (
    0.5000000000000003,
    0.08333333333289963,
    0.033333333422018836,
    0.017857135893079294,
    0.011111384062987567,
    0.007569781129684545,
    0.005570653761519815,
    0.0036116230553169012,
    0.005349349850318916,
)

_D = np.float64
SMALLEST = _D(2.2250738585072014e-308)  # the smallest normal number
HALF_LN2 = _D(0.34657359027997264)
LOG_ZERO = _D(-1000.0)  # stands for the logarithm of a zero, below that of any number
_ROOT_HALF = _D(0.7071067811865476)
_BORDER = _D(0.36)
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = (_D(c) for c in _CENTRED)
_W0, _W1, _W2, _W3, _W4, _W5, _W6, _W7, _W8, _W9 = (_D(c) for c in _WHOLE)
_N0, _N1, _N2, _N3, _N4, _N5, _N6, _N7, _N8 = (_D(c) for c in _NEAR)


@inlined_exact
def mixture(p: np.float64, q: np.float64, log_p: np.float64, log_q: np.float64) -> np.float64:
    """With t = p + q, t ln t - ln(2) / 2 · t within 2 eps t (1 + |ln max(p, q)|); 0 where both are zero.

    `log_p` and `log_q` are the logarithms within 1 ULP, LOG_ZERO for a zero.
    """
    t = p + q
    most = q if p < q else p
    log_most = log_q if log_p < log_q else log_p
    den = most + _ROOT_HALF * t
    s = (most - _ROOT_HALF * t) / (den if den > SMALLEST else SMALLEST)
    y = s * s
    series = _C3 + y * (_C4 + y * (_C5 + y * _C6))
    series = _C0 + y * (_C1 + y * (_C2 + y * series))
    return t * (log_most - s * series)


@inlined_exact
def jensen_close(p: np.float64, q: np.float64, log_p: np.float64, log_q: np.float64) -> np.float64:
    """Twice what one part adds, t g(a), in nats: never negative, and exactly 0 for equal weights.

    With a = |p - q| / t, g(a) = [(1+a) ln(1+a) + (1-a) ln(1-a)] / 2 is a polynomial in a² up to a = 0.36;
    above, t g(a) is t ln(1+a) - min(p, q) |ln p - ln q|. Off by at most (40 + 12 L) eps of itself,
    with L the larger of |log_p| and |log_q|, which are those of `mixture`. It takes twice the time.
    """
    t = p + q
    d = abs(p - q)
    a = d / (t if t > SMALLEST else SMALLEST)
    u = a * a
    near = _N4 + u * (_N5 + u * (_N6 + u * (_N7 + u * _N8)))
    near = _N0 + u * (_N1 + u * (_N2 + u * (_N3 + u * near)))
    den = t + t + d
    s = d / (den if den > SMALLEST else SMALLEST)
    y = s * s
    far = _W4 + y * (_W5 + y * (_W6 + y * (_W7 + y * (_W8 + y * _W9))))
    far = _W0 + y * (_W1 + y * (_W2 + y * (_W3 + y * far)))
    far = t * s * far - (p if p < q else q) * abs(log_p - log_q)
    return t * u * near if a < _BORDER else far
