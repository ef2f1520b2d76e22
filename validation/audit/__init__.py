"""The audit: which conclusions about heads depend on keeping or dropping the sink."""

from validation.audit.auditing import Audit, audit, audit_arrays

__all__ = ["Audit", "audit", "audit_arrays"]
