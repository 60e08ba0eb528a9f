"""The tools of pgaq: private servers, demo, workloads, benchmark, lab, the command `pgaq`."""
