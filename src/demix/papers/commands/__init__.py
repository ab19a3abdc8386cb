"""The commands of the papers, one file for each, named as the command."""
