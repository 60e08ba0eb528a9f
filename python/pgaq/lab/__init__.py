"""The lab: the experiments of the sources, their workloads and their report."""
