"""The shell commands of the rules. Names in braces are filled in by Snakemake."""

METHOD_OPTIONS = (
    "--method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed} "
    "--checkpoint {input.checkpoint} --backbones {input.backbones} --gallery {input.gallery} "
    "--fakes {input.fakes} --latents {input.latents}"
)
"""The options of a program that uses a method; its rule has the inputs `MethodInputs.files`."""


def local(script: str, *options: str, outputs: str = "{output}") -> str:
    """The command that runs ``workflow/scripts/<script>.py`` in the job itself."""
    return f"python {_program(script, options, outputs)}"


def launched(script: str, *options: str, outputs: str = "{output}") -> str:
    """The command that starts ``workflow/scripts/<script>.py`` where `compute.launcher` says: here or on a cluster."""
    launcher = "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
    return f"{launcher} {_program(script, options, outputs)}"


def _program(script: str, options: tuple[str, ...], outputs: str) -> str:
    common = "--params {params.cfg:q} --code {input.code} --threads {threads}"
    words = (f"workflow/scripts/{script}.py", common, *options, f"--outputs {outputs}", "> {log} 2>&1")
    return " ".join(words)
