"""The tables of results in docs/ and README.md: their rows and columns."""

from typing import NamedTuple

Columns = dict[str, tuple[str, ...]]
"""Heading -> the values that stand in the column, as `cell` reads them."""
CONTROLS = {
    "*control: original*": "original/control",
    "*control: another person*": "random_identity/control",
    "*control: blackout*": "blackout/control",
}
OBFUSCATIONS = {
    "Pixelation(16×16)": "pixelation/block_16",
    "Blur(19×19)": "gaussian_blur/size_19",
    "k-same (k = 5)": "k_same/k_5",
    "**IdentityDP (ε = 6)**": "identitydp/eps_6",
}
SWEEP = ("0.57", "6", "100", "400", "800")
LEVELS = (0, 3, 6, 9)
KEYWORDS = ("gender", "age", "expression", "makeup")
OBFUSCATED = {
    "blur 7×7": "gaussian_blur/size_7",
    "blur 19×19": "gaussian_blur/size_19",
    "pixelation 16×16": "pixelation/block_16",
    "noise σ = 49": "gaussian_noise/sigma_49",
    "k-same, k = 5": "k_same/k_5",
}
METHODS = {
    **OBFUSCATIONS,
    "**FALCO (m = 0)**": "falco/m_0",
    "**FALCO (m = 0.9)**": "falco/m_0_9",
    "**Cao et al., d = 9**": "cao21/d_9",
    "**iFADIT**": "ifadit/full",
    "**LReOrg**": "lreorg/default",
    "our FIT": "fit/default",
    "RiDDLE": "riddle/default",
    "DeepPrivacy": "deepprivacy/default",
    "DeepPrivacy2": "deepprivacy2/default",
    "CIAGAN": "ciagan/default",
    "LDFA": "ldfa/default",
    "DartBlur": "dartblur/default",
    "our AnonymousNet": "anonymousnet/default",
    "Fawkes (evasion)": "fawkes/default",
    "CLIP2Protect (evasion)": "clip2protect/default",
}
ATTACKED = {
    "Blur(19×19)": "gaussian_blur/size_19",
    "Pixelation(16×16)": "pixelation/block_16",
    "k-same (k = 5)": "k_same/k_5",
    "**IdentityDP (ε = 6)**": "identitydp/eps_6",
    "**FALCO (m = 0)**": "falco/m_0",
    "**Cao et al., d = 9**": "cao21/d_9",
    "**iFADIT**": "ifadit/full",
    "**LReOrg**": "lreorg/default",
    "our FIT": "fit/default",
    "RiDDLE": "riddle/default",
    "DeepPrivacy": "deepprivacy/default",
    "DeepPrivacy2": "deepprivacy2/default",
    "CIAGAN": "ciagan/default",
    "our AnonymousNet": "anonymousnet/default",
    "LDFA": "ldfa/default",
    "DartBlur": "dartblur/default",
    "Fawkes": "fawkes/default",
    "CLIP2Protect": "clip2protect/default",
}
FIVE_PAPERS = {
    "[**IdentityDP**](docs/identitydp.md) (Wen et al. 2022): noise with a privacy budget ε": "identitydp/eps_6",
    "[**FALCO**](docs/falco.md) (Barattin et al. 2023): a latent code away from the identity": "falco/m_0",
    "[**Cao et al.**](docs/cao21.md) (2021): a rotation by a password, which turns it back": "cao21/d_9",
    "[**iFADIT**](docs/ifadit.md) (Yuan et al. 2025): an invertible flow with a key": "ifadit/full",
    "[**LReOrg**](docs/lreorg.md) (ACM MM 2024): features replaced by keywords": "lreorg/default",
}
LREORG = {"hides identity": "lreorg/default"} | {f"hides {word} alone": f"lreorg/{word}" for word in KEYWORDS[:2]}


def rates(keyword: str) -> str:
    return f"attribute_preservation_rate/attribute_classifier.{keyword}.balanced"


def attacked(attack: str) -> tuple[str, str]:
    return f"key_attack_rate/{attack}", f"key_attack_rate/{attack}.another"


def cosine(attempt: str) -> tuple[str]:
    return (f"{attempt}:identity_similarity/recognizer_a",)


def ranks(*attackers: str) -> tuple[str, ...]:
    return tuple(f"attack_rank1_rate/{attacker}" for attacker in attackers)


STRONGEST: Columns = {"strongest attacker": ranks("strongest")}
NAIVE: Columns = {"naive": ranks("naive")}
LANDMARKS: Columns = {"landmark error, % of the eye distance": ("twin_landmark_error/",)}
ATTACKERS: Columns = {
    "adaptive": ranks("adapted"),
    "reconstruction": ranks("restoring"),
    "parrot (links)": ranks("parrot"),
}
HELD_OUT: Columns = {
    "naive": ("attack_held_out_rate/naive",),
    "adaptive": ("attack_held_out_rate/adapted",),
    "reconstruction": ("attack_held_out_rate/restoring",),
    "insider": ("attack_held_out_rate/insider",),
    "parrot (links)": ("attack_held_out_rate/parrot",),
    "shuffled labels (control)": ("attack_held_out_rate/shuffled",),
}
POISONED: Columns = {
    "targeted recognizer": ("poisoning_protection_rate/identity",),
    "unseen `recognizer_a`": ("poisoning_protection_rate/recognizer_a",),
    "adaptive recognizer": ("poisoning_protection_rate/adaptive",),
}
DISTANCE: Columns = {"identity distance": ("identity_distance/recognizer_a",)}
PROTECTED: Columns = {"PSR": ("protection_success_rate_at_far/recognizer_a",)}
PSNR: Columns = {"PSNR": ("psnr/",)}
HOG: Columns = {"faces detected": ("detection_rate/dlib_face",)}
FRECHET: Columns = {"FD": ("frechet_distance/mobilenet_v2",)}
MEASURED = DISTANCE | PROTECTED | HOG | FRECHET
LINKED = {f"[{label}](attackers.md)": paths for label, paths in STRONGEST.items()}
ATTACKED_TOO = MEASURED | LINKED
"""The columns of a method's page; the second ones if `mini` attacks it."""
RIGHT: Columns = {"cosine similarity, right key": cosine("recovered")}
SAVED: Columns = {"cosine similarity, right key, saved representation": cosine("saved")}
WRONG: Columns = {"cosine similarity, wrong keys": cosine("wrong")}
GUESSED: Columns = {"identified under any of 60 guessed keys / control (another person)": attacked("any_guess")}


class Table(NamedTuple):
    """What stands in a table."""

    heading: str
    """Of the first column. ``{faces}`` is the number of faces."""
    rows: dict[str, str]
    """Label -> method/variant."""
    columns: Columns
    turned: bool = False
    """Whether rows and columns change places."""


def of_method(variants: dict[str, str], controls: dict[str, str], columns: Columns = MEASURED) -> Table:
    """The table of a method's page. A small one is turned, so that it is narrow."""
    rows = variants | controls
    return Table("[scale `mini`](results.md#what-the-columns-mean), {faces} faces", rows, columns, len(rows) <= 4)


PERSON = {"*another person*": "random_identity/control"}
INVERTED = {"*inverted*": "inverted/control"}
BLACKOUT = {"*blackout*": "blackout/control"}
PAGES: dict[str, Table] = {
    "identitydp": of_method(
        {f"ε = {epsilon}": f"identitydp/eps_{epsilon.replace('.', '_')}" for epsilon in SWEEP}, PERSON, ATTACKED_TOO
    ),
    "falco": of_method(
        {
            "m = 0": "falco/m_0",
            "m = 0.9": "falco/m_0_9",
            "identity loss alone": "falco/id",
            "attribute loss alone": "falco/attributes",
        },
        INVERTED | PERSON,
        ATTACKED_TOO,
    ),
    "cao21": of_method(
        {f"d = {level}": f"cao21/d_{level}" for level in LEVELS}, PERSON, DISTANCE | PROTECTED | RIGHT | WRONG
    ),
    "ifadit": of_method({"iFADIT": "ifadit/full"}, INVERTED | PERSON, ATTACKED_TOO | RIGHT | SAVED | WRONG | GUESSED),
    "lreorg": of_method({"LReOrg": "lreorg/default"}, INVERTED | PERSON, ATTACKED_TOO),
    "keywords": of_method(LREORG, INVERTED, {word: (rates(word),) for word in KEYWORDS}),
    "fit": of_method({"our FIT": "fit/default"}, PERSON, MEASURED | RIGHT | WRONG | GUESSED),
    "riddle": of_method({"RiDDLE": "riddle/default"}, PERSON, MEASURED | RIGHT | SAVED | WRONG | GUESSED),
    "deepprivacy": of_method({"DeepPrivacy": "deepprivacy/default"}, PERSON, ATTACKED_TOO),
    "deepprivacy2": of_method({"DeepPrivacy2": "deepprivacy2/default"}, PERSON),
    "ciagan": of_method({"CIAGAN": "ciagan/default"}, PERSON, ATTACKED_TOO),
    "ldfa": of_method({"LDFA": "ldfa/default"}, PERSON),
    "dartblur": of_method({"DartBlur": "dartblur/default"}, PERSON),
    "anonymousnet": of_method({"our AnonymousNet": "anonymousnet/default"}, PERSON),
    "fawkes": of_method({"Fawkes": "fawkes/default"}, PERSON, ATTACKED_TOO),
    "clip2protect": of_method({"CLIP2Protect": "clip2protect/default"}, INVERTED | PERSON),
    "obfuscations": of_method(OBFUSCATED, {"*original*": "original/control"} | PERSON | BLACKOUT, ATTACKED_TOO),
}
"""Name of a method -> the table of its page."""
TABLES = PAGES | {
    "readme": Table(
        "method, scale `mini`, seed 0",
        OBFUSCATIONS | {name: CONTROLS[name] for name in list(CONTROLS)[:2]},
        {f"{label}, `recognizer_a`": paths for label, paths in (DISTANCE | PROTECTED).items()}
        | PSNR
        | {"faces detected, HOG": HOG["faces detected"]},
    ),
    "methods": Table(
        "method, {faces} faces",
        METHODS | INVERTED | CONTROLS,
        PROTECTED | LINKED | {"attributes preserved": ("attribute_preservation_rate/attribute_classifier.balanced",)},
    ),
    "attackers": Table("method", ATTACKED | CONTROLS, {"**strongest**": STRONGEST["strongest attacker"]} | NAIVE),
    "papers": Table(
        "paper and idea",
        FIVE_PAPERS,
        {"identified by the naive recognizer": ranks("naive"), "by the strongest attacker": ranks("strongest")},
    ),
    "each_attacker": Table("method", ATTACKED | CONTROLS, ATTACKERS | LANDMARKS),
    "held_out": Table("method", ATTACKED | CONTROLS, HELD_OUT),
    "poisoned": Table(
        "method",
        {"Fawkes": "fawkes/default", "CLIP2Protect": "clip2protect/default", "*control: original*": "original/control"},
        POISONED,
    ),
}
"""Name of a table in a page -> the table."""
