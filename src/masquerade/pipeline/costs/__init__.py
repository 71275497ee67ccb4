"""The cost of a scale's matrix, estimated before it runs: `masquerade plan`.

The pipeline's own code does one step of everything, with the real parameters, on tensors that have a shape and no
values (`meta`). The FLOPs and the memory of that step are counted (`counter`). The FLOPs are multiplied by the number
of steps or pictures in the matrix (`workload`).
"""
