"""How anything is trained: the loop, the job, optimizers, several processes, checkpoints and published weight files.
What is trained is in backbones/ and methods/, and the architectures are in networks/.
"""
