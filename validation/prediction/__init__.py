"""How often verdicts flip between keep and drop, predicted from statistics under keep alone."""
