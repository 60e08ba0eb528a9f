"""The tool `pgaq`: private servers, workloads, ledger checker, benchmark."""
