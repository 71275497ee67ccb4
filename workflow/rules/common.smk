# Parameters, cells, and the few functions that the rules share.
import gc
import json
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

# Planning makes objects by the million that stay; looking among them for what may go takes a seventh of its time.
gc.set_threshold(100_000, 50, 100)

# The code is that of this working copy, whichever copy is installed; jobs find it and this Python, and one build.
SOURCES = str(Path(workflow.basedir) / "src")
sys.path.insert(0, SOURCES)
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    PYTHONPATH=os.pathsep.join([SOURCES, os.environ.get("PYTHONPATH", "")]).strip(os.pathsep),
    MASQUERADE_BUILD=os.environ.get("MASQUERADE_BUILD")
    or time.strftime("%Y-%m-%d %H:%M:%S") + f" {os.urandom(2).hex()}",
)

from masquerade import assets, discovery, effective, launch, lineage, matrix, params, rehearsal, versioning
from masquerade.errors import MasqueradeError
from masquerade.guessing import GuessingSettings
from masquerade.papers import claims, guests, reference
from masquerade.params import AttributeSettings
from masquerade.recovery import RecoverySettings
from snakemake.exceptions import WorkflowError
from snakemake.jobs import GroupJob
from snakemake.logging import logger

try:
    PARAMETERS = params.load(Path(workflow.basedir), config.get("scale"))
    CELLS = matrix.cells(PARAMETERS)
    FOUND = [item for paper in PARAMETERS.papers for item in reference.find(paper)]
    ITEMS = {item.key: guests.seated(item, PARAMETERS.imported, PARAMETERS.stand_ins) for item in FOUND}
    CLAIMS = claims.of_papers(claims.load(), PARAMETERS.papers)
except MasqueradeError as error:
    raise WorkflowError(str(error))

LEARNT_FROM = PARAMETERS.matrix.train_on
there, why = discovery.load("faces", LEARNT_FROM)(PARAMETERS.datasets[LEARNT_FROM]).available()
if not there:
    more = f" {assets.how_to_get(LEARNT_FROM)}" if LEARNT_FROM in assets.registry() else ""
    raise WorkflowError(f"matrix.train_on is {LEARNT_FROM}, without which nothing is built: {why}.{more}")
SCALE = PARAMETERS.scale
REHEARSING = (rehearsal.MARK,) * PARAMETERS.rehearsal
rehearsal.declare(PARAMETERS.rehearsal)
if PARAMETERS.rehearsal:
    logger.info(f"Scale {SCALE} is a rehearsal: no tables, figures, claims, scores or report are made of it.")
if "scale" not in config:
    effective.write(PARAMETERS, Path(workflow.basedir) / effective.FILE)
RUNNABLE = [cell for cell in CELLS if cell.runnable]
PLANNED = matrix.by_setting(CELLS)
OFFERED = matrix.by_setting(RUNNABLE)
# What was imported are pictures of test faces: their program cannot be asked for more.
BUILT = [cell for cell in RUNNABLE if cell.method not in PARAMETERS.imported]
ATTRIBUTED = matrix.matching(BUILT, PARAMETERS.attributes.cells)
ATTRIBUTE_DATASETS = sorted({cell.dataset for cell in ATTRIBUTED} | {PARAMETERS.matrix.train_on})
LEARNING = sorted(AttributeSettings.model_fields)  # knobs of the attribute protocol, less who goes through it
TRIED = matrix.matching(BUILT, PARAMETERS.recovery.cells)
GUESSED = matrix.matching(BUILT, PARAMETERS.guessing.cells)
TRYING = sorted(RecoverySettings.model_fields)
GUESSING = sorted(GuessingSettings.model_fields)
DATASETS = sorted({cell.dataset for cell in RUNNABLE} | {PARAMETERS.matrix.train_on})
PACKAGE = Path("src/masquerade")

DATA, CHECKPOINTS, RESULTS = f"data/{SCALE}", f"checkpoints/{SCALE}", f"results/{SCALE}"
FACES = f"{DATA}/faces/{{dataset}}.zip"
BACKBONE = f"{CHECKPOINTS}/backbones/{{backbone}}.safetensors"
QUALITY = f"{CHECKPOINTS}/backbones/{{backbone}}.json"
BACKBONES_TABLE = f"{RESULTS}/tables/backbones.md"
FAKES = f"{DATA}/fakes.safetensors"
LATENTS = f"{DATA}/latents/{{dataset}}.safetensors"
CHECKPOINT = f"{CHECKPOINTS}/methods/{{method}}/{{seed}}.safetensors"
ABLATED = f"{CHECKPOINTS}/ablations/{{method}}/{{variant}}/{{seed}}.safetensors"
ANONYMIZED = f"{DATA}/anonymized/{{dataset}}/{{method}}/{{variant}}/{{seed}}.zip"
ANONYMIZED_TRAIN = f"{DATA}/anonymized_train/{{dataset}}/{{method}}/{{variant}}/{{seed}}.zip"
IMPORTED = f"imported/{SCALE}/{{dataset}}/{{method}}/{{variant}}.zip"
PSEUDO_LABELS = f"{DATA}/attributes/pseudo_labels.parquet"
ATTRIBUTES = f"{DATA}/attributes/{{dataset}}/{{method}}/{{variant}}/{{seed}}.parquet"
ATTEMPTS = f"{DATA}/attempts/{{dataset}}/{{method}}/{{variant}}/{{seed}}.zip"
ATTEMPTS_MEASURED = f"{DATA}/measurements_of_attempts/{{dataset}}/{{method}}/{{variant}}/{{seed}}.parquet"
FEATURES = f"{DATA}/features/{{dataset}}/{{method}}/{{variant}}/{{seed}}.parquet"
GUESSES = f"{RESULTS}/guesses/{{dataset}}/{{method}}/{{variant}}/{{seed}}.json"
GUESSING_TABLE = f"{RESULTS}/tables/guessing.md"
CLAIMS_TABLE = f"{RESULTS}/tables/claims"
SOURCE = f"{DATA}/measurements/{{dataset}}/source.parquet"
MEASURED = f"{DATA}/measurements/{{dataset}}/{{method}}/{{variant}}/{{seed}}.parquet"
SCORES = f"{RESULTS}/{versioning.SCORES}"
METRICS = f"{RESULTS}/metrics/{{dataset}}/{{method}}/{{variant}}/{{seed}}.json"
TABLE = f"{RESULTS}/tables/{{paper}}/{{item}}"
FIGURE = f"{RESULTS}/figures/{{paper}}/{{item}}"
REPORT = f"{RESULTS}/report/index.html"


WORLD = ("generator", "inversion", "semantics")  # what codes of faces depend on


def one_of(names):
    return "|".join(sorted({str(name) for name in names})) or "none"


# A name that the validated parameters do not hold fails while the graph is built.
wildcard_constraints:
    dataset=one_of(DATASETS),
    method=one_of(cell.method for cell in CELLS),
    variant=one_of(cell.variant for cell in CELLS),
    seed=r"\d+",
    backbone=one_of(PARAMETERS.backbones),
    paper=one_of(PARAMETERS.papers),
    item=r"[a-z0-9_]+",


@cache
def canonical(keys):
    """A slice of the parameters as one canonical JSON string, which all jobs that ask for it share."""
    return json.dumps(PARAMETERS.slice(keys), sort_keys=True)


def P(*keys):
    """The job's slice of the parameters; the export to DVC reads ``.keys``. In a rehearsal every job is told so."""

    def value(wildcards):
        return canonical(tuple(key.format(**dict(wildcards.items())) for key in keys) + REHEARSING)

    value.keys = keys
    return value


@cache
def code(step, *modules):
    """The file with the fingerprints of the code of a step: its program, and the modules it loads by name.

    Snakemake lists a folder once and would not see a file that planning has written since: it is told. And it looks
    at the content of an input only where that is newer than the outputs: this one always is, so that no touch hides
    an edit.
    """
    roots = [Path(f"workflow/scripts/{step.split('.')[0]}.py"), *modules]
    file = str(lineage.write_fingerprints(Path(f".masquerade/code/{step}.json"), roots, Path(workflow.basedir)))
    os.utime(file)
    workflow.iocache.exists_local[file] = True
    return file


@cache
def module(room, name):
    return PACKAGE / room / f"{name}.py"


def modules(room, names):
    return [module(room, name) for name in names]


def method_code(step):
    """``input`` function: the code of a step of the wildcard's method and of the backbones that it needs."""

    def value(wildcards):
        loaded = modules("methods", [wildcards.method])
        return code(
            f"{step}.{wildcards.method}",
            *loaded,
            *modules("backbones", needs(wildcards.method)),
        )

    return value


def dataset_of(name):
    return discovery.load("faces", name)(PARAMETERS.datasets[name])


@cache
def sources_of(dataset):
    """The files that a dataset's faces are made from; what planning wrote just now is told to Snakemake, as above."""
    sources = dataset_of(dataset).sources()
    for path in sources:
        if path.parts[0] == ".masquerade":
            workflow.iocache.exists_local[str(path)] = True
    return [str(path) for path in sources]


def built_on(backbone):
    return discovery.load("backbones", backbone).needs


@cache
def asset(role):
    """The file that says which bytes an asset has: what jobs declare in its place (`masquerade.assets.identity`)."""
    file = str(assets.write_identity(role))
    os.utime(file)
    workflow.iocache.exists_local[file] = True
    return file


def assets_of(roles):
    return [asset(role) for role in roles]


def published(backbone):
    """The weight file that takes the place of a training; nothing where it is trained here."""
    found = discovery.load("backbones", backbone)(PARAMETERS.backbones[backbone])
    if found.asset:
        return asset(found.asset)
    return str(found.published) if found.published else []


def needs(method):
    return discovery.load("methods", method).needs


def checkpoint_of(wildcards):
    """The checkpoint of a cell: an ablation has its own."""
    if not capabilities(wildcards.method).trains:
        return []
    return ABLATED if wildcards.variant in PARAMETERS.ablations(wildcards.method) else CHECKPOINT


def kin_of(wildcards):
    """The checkpoint of the method's kin, where both ask for the same training."""
    kin = discovery.load("methods", wildcards.method).kin
    if kin not in PARAMETERS.methods:
        return []
    own, other = (PARAMETERS.tree["methods"][name]["params"] for name in (wildcards.method, kin))
    same = all(own.get(knob) == value for knob, value in other.items())
    return CHECKPOINT.format(method=kin, seed=wildcards.seed) if same else []


def own_train(dataset):
    """Whether a dataset has a train split; one without is split for the attribute protocol."""
    return dataset == PARAMETERS.matrix.train_on


def where(cells, pattern):
    """``input`` function: the file of the wildcards' cell, where it is one of these."""
    paths = {cell.path for cell in cells}
    return lambda w: pattern if f"{w.dataset}/{w.method}/{w.variant}/{w.seed}" in paths else []


def capabilities(method):
    return discovery.load("methods", method).capabilities


def resources_of(method, dataset):
    """What a method gets beside faces and backbones: the file of each kind that its capabilities ask for."""
    able = capabilities(method)
    return {
        "gallery": indexed(FACES.format(dataset=PARAMETERS.matrix.train_on)) if able.gallery else [],
        "fakes": FAKES if able.fakes else [],
        "latents": LATENTS.format(dataset=dataset) if able.latents else [],
    }


def indexed(archive):
    """An archive and the index beside it."""
    return [archive, archive.replace(".zip", ".parquet")]


def of_cells(pattern):
    return [pattern.format(**vars(cell)) for cell in RUNNABLE]


def results(*paths):
    """What a reader takes for results: a rehearsal makes none of it."""
    return [] if PARAMETERS.rehearsal else list(paths)


def look_when_jobs_end():
    """Let the scheduler look at the waiting jobs only when a job has ended.

    For its limit of jobs a second (100, far above what runs here) it looks again a second after every look; each job
    that ends adds one more such chain of looks, and a hundred chains keep a core busy (Snakemake 9.27).
    """
    workflow.scheduler.job_rate_limiter = None


def refuse_touch():
    """`--touch` would record old bytes as if the present code and parameters had made them."""
    if workflow.touch:
        raise WorkflowError(
            "--touch is not for this workflow: it would record old bytes as if the present code and parameters had made "
            "them. There is no need of it: content decides what is out of date, and fresh times are no change."
        )


def tell_why_groups_fail():
    """Print the reason that an executor gives for a group's failure; Snakemake 9.27 drops it."""
    log_error = GroupJob.log_error

    def told(group, msg=None, **more):
        log_error(group, msg, **more)
        if msg:
            logger.error(f"Group {group.groupid}: {msg}")

    GroupJob.log_error = told


def check_assets():
    """A file from outside that a job will need and that is not there stops the build before anything runs."""
    read = {str(path) for job in workflow.dag.needrun_jobs() for path in job.input}
    roles = sorted({role for path in read if (role := assets.role_of(path))})
    troubles = [trouble for role in roles if (trouble := assets.unready(role))]
    if troubles:
        raise WorkflowError("Files from outside are not ready (`masquerade assets list`):\n" + "\n".join(troubles))


def tell_what_is_missing():
    """Say, when the graph is planned, what is not there or left out for want of files from outside."""
    built = [discovery.load("backbones", name)(block).asset for name, block in PARAMETERS.backbones.items()]
    looked = [*judges_of("measure"), *judges_of("recovery"), *[PARAMETERS.guessing.judge] * bool(GUESSED)]
    roles = [*filter(None, built), *(role for name in looked for role in discovery.load("judges", name).assets)]
    unready = [trouble for role in dict.fromkeys(roles) if (trouble := assets.unready(role))]
    if unready:
        logger.warning(
            "Files from outside that are not ready, without which a build stops (`masquerade assets list`):\n"
            + "\n".join(unready)
        )
    left_out = {f"{cell.dataset}: {cell.reason}" for cell in CELLS if not cell.runnable}
    if left_out:
        logger.warning("Left out of the matrix:\n" + "\n".join(sorted(left_out)))


def check_cluster():
    """A partition that the cluster has not stops the build before anything is submitted."""
    compute = PARAMETERS.compute
    if workflow.non_local_exec or compute.launcher == "slurm":
        asked = {f"compute.{kind}.partition": getattr(compute, kind).partition for kind in SUBMISSIONS}
        asked |= {f"compute.own.{job}.partition": knobs.get("partition", "") for job, knobs in compute.own.items()}
        try:
            launch.check_partitions(asked)
        except MasqueradeError as error:
            raise WorkflowError(str(error))


def finish(outcome):
    """Publish the runs; after a success also record the bytes, unless DVC started this, the scale is not its own, or it rehearses."""
    own = "scale" not in config and not PARAMETERS.rehearsal
    recorded = outcome == "success" and own and not os.environ.get("DVC_STAGE")
    deeds = ["publish", "record"] if recorded else ["publish"]
    commands = [[sys.executable, "workflow/scripts/finish.py", deed] for deed in deeds]
    for process in [subprocess.Popen(command) for command in commands]:  # side by side
        process.wait()


def judges_of(block):
    """Who looks at every set (``measure``), or at what was recovered (``recovery``)."""
    return getattr(PARAMETERS, block).judges


def judges_code(wildcards, block):
    loaded = modules("judges", judges_of(block))
    return code(f"measure.{block}", *loaded, *modules("backbones", judges_need(block)))


@cache
def judges_need(block):
    names = [name for judge in judges_of(block) for name in discovery.load("judges", judge).needs]
    return list(dict.fromkeys(names))


@cache
def judges_files(block):
    """The official weight files that they load."""
    return assets_of(role for judge in judges_of(block) for role in discovery.load("judges", judge).assets)


def judged(block):
    return [f"judges.{name}" for name in judges_of(block)]


GUESSER = discovery.load("judges", PARAMETERS.guessing.judge)


def item_of(wildcards):
    return ITEMS[f"{wildcards.paper}/{wildcards.item}"]


def imported_of(wildcards):
    """The blocks of the imported methods that the wildcards' table shows, as one JSON string."""
    return json.dumps(PARAMETERS.slice(imported_of.keys(wildcards)), sort_keys=True)


def imported_keys(wildcards):
    shown_here = {row.method for row in item_of(wildcards).rows}
    return tuple(f"imported.{name}" for name in PARAMETERS.imported if name in shown_here)


imported_of.keys = imported_keys


def items_of(kind):
    """Names of one kind, each behind its own paper: Figure 4 is curves in one paper and a grid in another."""
    return one_of(f"(?<=/{item.paper}/){item.name}" for item in ITEMS.values() if item.kind == kind)


def asked(item, needed=reference.needs):
    """The (dataset, method, variant) that a table or figure shows, with the datasets that stand in here."""
    here = {named.role: reference.stand_in(named, PARAMETERS.stand_ins.datasets) for named in reference.datasets(item)}
    offered = dict.fromkeys((method, variant) for dataset, method, variant in PLANNED if dataset in here.values())
    return [(here[role], method, variant) for role, method, variant in needed(item, offered)]


def files(pattern, wanted, offered=OFFERED):
    """The files of those cells that are wanted and there."""
    return [pattern.format(**vars(cell)) for cell in matrix.chosen(offered, wanted)]


def shown(pattern, needed=reference.needs, offered=OFFERED):
    """``input`` function: the files of those cells that the wildcards' table or figure shows."""
    return lambda w: files(pattern, asked(item_of(w), needed), offered)


def reasons(wanted):
    """Why those of the wanted cells that are not there are not, as JSON."""
    found = matrix.skipped(PARAMETERS, wanted, PLANNED)
    return json.dumps([[*cell, reason] for cell, reason in sorted(found.items())])


def not_shown(wildcards):
    """Why the other cells of the wildcards' table or figure are not there."""
    return reasons(asked(item_of(wildcards)))


def claimed():
    """The (dataset, method, variant) of every number that the claims compare."""
    stand_ins = PARAMETERS.stand_ins.datasets
    return [(stand_ins.get(role, role), method, variant) for role, method, variant in claims.needs(CLAIMS)]


def source_of(pattern):
    return lambda w: pattern.format(dataset=asked(item_of(w))[0][0])


def distances_of(pattern):
    """``input`` function: measurements, where a grid chooses its faces by distance."""
    return lambda w: pattern(w) if item_of(w).choose == "closest_to_mean" else []


CLUSTERED = {cell for item in ITEMS.values() if item.kind == "clusters" for cell in asked(item)}
ABOUT = P("scale", "seeds", "stand_ins", "caution")


SUBMISSIONS = ("light", "training", "inference")


# Where a job runs is no trigger: it changes when a number is made, not which number.
def submitted(kind, name, threads):
    """Resources of what may go to a GPU: who starts it, and what submitit asks of the cluster.

    ``name``, a string or a function of the wildcards, finds what `compute.own` says. On the cluster these rules
    are local: they only wait there.
    """
    compute = PARAMETERS.compute

    def submission(wildcards):
        who = name(wildcards) if callable(name) else name
        asked = compute.submission(kind, who).model_dump()
        shared = {key: getattr(compute, key) for key in ("account", "setup", "grace_seconds", "requeues")}
        more = {
            "name": f"{kind} {who}",
            "cpus": compute.threads[threads],
            "resumable": kind == "training",
            "logs": f"logs/{SCALE}/submitit",
        }
        return json.dumps(asked | shared | more)

    return {"launcher": compute.launcher, "submission": submission}


# What the jobs of Snakemake's own executor ask of the cluster.
LIGHT = {
    "runtime": PARAMETERS.compute.light.minutes,
    "mem_mb": int(PARAMETERS.compute.light.memory_gb * 1024),
    **{"slurm_partition": name for name in [PARAMETERS.compute.light.partition] if name},
    **{"slurm_account": name for name in [PARAMETERS.compute.account] if name},
}
# A metric or a table takes seconds, and little memory.
BRIEF = LIGHT | {"runtime": min(5, LIGHT["runtime"]), "mem_mb": min(4096, LIGHT["mem_mb"])}
# Methods of networks, against those that a processor computes at once.
NEURAL = {method for method in PARAMETERS.methods if needs(method) or capabilities(method).trains}
ARCHIVES = [FACES.format(dataset=name) for name in DATASETS]
# Input functions: each is looked up when a rule asks for it, not by every job that reads these files.
TARGETS = {
    "data": lambda w: [path for archive in ARCHIVES for path in indexed(archive)],
    "backbones": lambda w: [
        path
        for name in PARAMETERS.backbones
        for path in (
            BACKBONE.format(backbone=name),
            QUALITY.format(backbone=name),
        )
    ]
    + results(BACKBONES_TABLE),
    "latent": lambda w: [FAKES] * any(capabilities(cell.method).fakes for cell in BUILT)
    + sorted({LATENTS.format(dataset=cell.dataset) for cell in BUILT if capabilities(cell.method).latents}),
    "train": lambda w: sorted(
        {checkpoint_of(cell).format(**vars(cell)) for cell in BUILT if capabilities(cell.method).trains}
    ),
    "anonymize": lambda w: [path for archive in of_cells(ANONYMIZED) for path in indexed(archive)]
    + [
        path
        for cell in ATTRIBUTED
        if own_train(cell.dataset)
        for path in indexed(ANONYMIZED_TRAIN.format(**vars(cell)))
    ],
    "measure": lambda w: [SOURCE.format(dataset=name) for name in DATASETS] + of_cells(MEASURED),
    "attributes": lambda w: [
        PSEUDO_LABELS,
        f"{RESULTS}/attributes/pseudo_labels.json",
        *(ATTRIBUTES.format(**vars(cell)) for cell in ATTRIBUTED),
    ],
    "recovery": lambda w: [path for cell in TRIED for path in indexed(ATTEMPTS.format(**vars(cell)))]
    + [ATTEMPTS_MEASURED.format(**vars(cell)) for cell in TRIED]
    + [GUESSES.format(**vars(cell)) for cell in GUESSED]
    + results(GUESSING_TABLE),
    "features": lambda w: files(FEATURES, CLUSTERED),
    "metrics": lambda w: of_cells(METRICS) + results(SCORES),
    "tables": lambda w: results(
        *(
            f"{TABLE if item.kind == 'table' else FIGURE}.{ending}".format(paper=item.paper, item=item.name)
            for item in ITEMS.values()
            for ending in item.endings
        ),
        *(f"{CLAIMS_TABLE}.{ending}" for ending in ("csv", "md", "tex")),
    ),
    "report": lambda w: results(REPORT),
}

if workflow.is_main_process:
    tell_what_is_missing()
