"""The command `pgaq`."""
