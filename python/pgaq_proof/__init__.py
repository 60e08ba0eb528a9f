"""Tools of the tests alone: the run of all rungs, faults, stress."""
