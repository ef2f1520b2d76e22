"""The audit: which conclusions about heads depend on keeping or dropping the sink."""
