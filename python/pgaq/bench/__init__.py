"""The measuring programs of bench/."""
