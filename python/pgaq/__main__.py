"""python -m pgaq: the command from the tree."""

from pgaq.command.main import main

main()
