"""`python -m rail` is the command `rail`."""

from rail.cli import main

main()
