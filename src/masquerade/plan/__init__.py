"""What the matrix of a scale costs, before it runs: `masquerade plan`.

The pipeline's own code does one step of everything with the real parameters, on tensors that have shapes and no numbers
(`pretence`); what that step would compute and hold is counted (`costs`) and multiplied by how often the matrix asks
for it (`jobs`).
"""
