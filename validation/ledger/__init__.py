"""The ledger of published claims: rules applied to results of commands, and what came out."""
