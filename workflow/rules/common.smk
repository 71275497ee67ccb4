# Makes the graph of the scale, and passes to Snakemake what `masquerade.pipeline` computes.
import gc
import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

# Planning makes millions of objects that stay; searching them for garbage takes a seventh of its time.
gc.set_threshold(100_000, 50, 100)

# Jobs import the code of this working copy, use this Python, and carry the name of this build. The packages of this
# Python come before those of PYTHONPATH, which environment modules of clusters set.
ROOT = Path(workflow.basedir)
FIRST = [str(ROOT / "src"), sysconfig.get_path("purelib")]
sys.path[:0] = FIRST
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    PYTHONPATH=os.pathsep.join(filter(None, [*FIRST, os.environ.get("PYTHONPATH")])),
    MASQUERADE_BUILD=os.environ.get("MASQUERADE_BUILD")
    or time.strftime("%Y-%m-%d %H:%M:%S") + f" {os.urandom(2).hex()}",
)

from masquerade.core.errors import MasqueradeError
from masquerade.lineage import local_records, snakemake_internals, versioning
from masquerade.core.discovery import IMPORTED
from masquerade.params.paths import CELL, index, with_index
from masquerade.params.slices import list_protocol_keys
from masquerade.pipeline import checks, fork_server, submission
from masquerade.pipeline.graph import LATENT_BACKBONES, Graph, Targets, match_any
from masquerade.pipeline.rule_inputs import VARIANT_KEYS
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

try:
    checks.check_place(ROOT)
    checks.check_experiment(ROOT)
    GRAPH = Graph(ROOT, announce=lambda path: snakemake_internals.announce_file(workflow, path), config=config)
except MasqueradeError as error:
    raise WorkflowError(str(error))

PARAMETERS, PATHS, SCALE, CODE = GRAPH.parameters, GRAPH.paths, GRAPH.scale, GRAPH.planned.code
BACKBONES, METHODS, JUDGES, ATTACKERS, PAPERS = (
    GRAPH.backbones,
    GRAPH.methods,
    GRAPH.judges,
    GRAPH.attackers,
    GRAPH.papers,
)
COMPUTE, TARGETS = PARAMETERS.compute, Targets(GRAPH)
LOGS, BENCHMARKS = PATHS.logs, f"{PATHS.logs}/benchmarks"
LIGHT, BRIEF = submission.make_light_resources(COMPUTE), submission.make_brief_resources(COMPUTE)
ABOUT = GRAPH.params_slice("scale", "seeds", "stand_ins", "latent_stand_ins", "caution")
SLURM = submission.read_slurm_settings()  # read now: later Snakemake's executor removes them in a job of SLURM
FORK_SERVER = fork_server.ForkServer(logger.warning)


def submitted(kind, name, threads):
    """Resources of a job that may go to a GPU."""
    return submission.make_submission(COMPUTE, PATHS.submissions, kind, name, threads)


# A name that the parameters do not hold is an error before anything runs.
wildcard_constraints:
    dataset=match_any(GRAPH.datasets),
    method=match_any(cell.method for cell in GRAPH.all_cells),
    variant=match_any(cell.variant for cell in GRAPH.all_cells),
    seed=r"\d+",
    backbone=match_any(PARAMETERS.backbones),
    paper=match_any(PARAMETERS.papers),
    item=r"[a-z0-9_]+",


if PARAMETERS.rehearsal:
    logger.info(f"Scale {SCALE} is a rehearsal: it makes no tables, figures, claims, scores or report.")
if workflow.is_main_process:
    try:
        if not config:
            versioning.ignore_private(PARAMETERS.private, ROOT)
        if sentence := local_records.sync_records(SCALE, ROOT):
            logger.info(sentence)
    except MasqueradeError as error:
        raise WorkflowError(str(error))
    for text in checks.collect_warnings(GRAPH):
        logger.warning(text)


def serve_jobs(number):
    """Let the jobs of this process, if they are enough, share one import of the libraries."""
    FORK_SERVER.start(number)
    snakemake_internals.account_for_jobs(fork_server.read_usage)


if handed := snakemake_internals.count_handed_jobs(workflow, sys.argv):  # a group of jobs on SLURM; it has no hooks
    serve_jobs(handed)


def before_jobs():
    """Stop a build that cannot end well, before anything runs."""
    if snakemake_internals.touches(workflow):
        raise WorkflowError(
            "--touch is not for this workflow: it would record old bytes as if the present code and parameters had made "
            "them. There is no need of it: content decides what is out of date, and fresh times are no change."
        )
    try:
        checks.check_assets(snakemake_internals.list_pending_inputs(workflow))
        submission.prepare_submission(COMPUTE, snakemake_internals.submits_jobs(workflow), SLURM)
    except MasqueradeError as error:
        raise WorkflowError(str(error))
    snakemake_internals.schedule_on_job_end(workflow)
    snakemake_internals.log_group_errors()
    if not snakemake_internals.submits_jobs(workflow):
        serve_jobs(snakemake_internals.count_pending_jobs(workflow))


def after_jobs(outcome):
    """Publish the runs. After a success, record the build, if DVC did not start it: then its stage does so."""
    own_scale = not config and not PARAMETERS.rehearsal
    record = outcome == "success" and own_scale and versioning.OF_DVC not in os.environ
    commands = [[sys.executable, "workflow/scripts/finish.py", step] for step in ["publish", "record"][: 1 + record]]
    for process in [subprocess.Popen(command) for command in commands]:  # both at the same time
        process.wait()
    FORK_SERVER.stop()
