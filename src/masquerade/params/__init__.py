"""What is to be built: the typed parameters, their YAML files and overlays, their schema, the paths of all files, and
the matrix of cells. What a method or another module does with its parameters is in that module's room, and nothing here
imports torch.
"""
