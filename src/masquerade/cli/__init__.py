"""This room is the command line: the arguments and the terminal output of every ``masquerade ...`` command.

The work of a command lies in the other rooms; only checks of the machine are here.
"""
