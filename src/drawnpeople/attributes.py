"""The attributes of a drawn face, under CelebA's names, and its caption."""

from typing import TYPE_CHECKING

from drawnpeople.person import Person
from drawnpeople.shot import Shot

if TYPE_CHECKING:
    from drawnpeople.shape import Body

INNER = (
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Bags_Under_Eyes", "Big_Lips", "Big_Nose", "Bushy_Eyebrows", "Eyeglasses",
    "Goatee", "Heavy_Makeup", "High_Cheekbones", "Male", "Mouth_Slightly_Open", "Mustache", "Narrow_Eyes", "No_Beard",
    "Pale_Skin", "Pointy_Nose", "Rosy_Cheeks", "Smiling", "Wearing_Lipstick", "Young",
)  # fmt: skip
"""CelebA's attributes of the inner region of the face (Barattin et al. 2023, Table 5)."""
OUTER = (
    "Bald", "Bangs", "Black_Hair", "Blond_Hair", "Brown_Hair", "Chubby", "Double_Chin", "Gray_Hair", "Oval_Face",
    "Receding_Hairline", "Straight_Hair", "Wavy_Hair", "Wearing_Hat",
)  # fmt: skip
"""Those of the outer region (the same table) that are rendered: it has four more."""
NAMES = tuple(sorted(INNER + OUTER))

RECEDING = 0.018
"""Metres that a receding hairline has moved back."""
HIDDEN_BY_HATS = ("bald", "buzz")
"""Styles of which no hair shows under a hat."""


def attributes(person: Person, shot: Shot, body: "Body") -> dict[str, bool]:
    """CelebA's attribute -> whether the face has it, for the attributes that are drawn.

    Each is a threshold on parameters of the person and the shot, or on measures of the neutral face, which are in eye
    distances. The thresholds give rates that a crowd of strangers could have.
    """
    p, s, m = person, shot, body.measured
    return {
        **_describe(p, s),
        "Bags_Under_Eyes": p.eye_bags > 0.45,
        "Big_Lips": m["lips_height"] > 0.375,
        "Big_Nose": m["nose_width"] > 0.62,
        "Chubby": m["fullness"] > 0.072,
        "Double_Chin": m["double_chin"] > -0.14,
        "High_Cheekbones": m["cheekbones"] + 0.05 * s.smile > 1.235,
        "Narrow_Eyes": m["eye_opening"] * s.eye_open < 0.115,
        "No_Beard": p.beard == "none",
        "Oval_Face": m["jaw_width"] < 1.90 and m["face_length"] > 1.75,
        "Pale_Skin": p.melanin < 0.12,
        "Pointy_Nose": m["nose_tip"] > 0.37 and m["nose_width"] < 0.56,
        "Receding_Hairline": p.recede > RECEDING and p.style != "bald" and not s.hat,
        "Rosy_Cheeks": p.rosy > 0.68 or s.makeup > 0.75,
        "Young": p.age < 40.0,
    }


def _describe(p: Person, s: Shot) -> dict[str, bool]:
    """The attributes of which captions speak; none needs a measure of the body."""
    shows = p.style != "bald" and not (s.hat and p.style in HIDDEN_BY_HATS)
    gray = p.gray > 0.5 and shows
    wavy = p.curl > 0.35
    return {
        "5_o_Clock_Shadow": p.beard == "stubble",
        "Arched_Eyebrows": p.brow_arch > 0.60,
        "Bald": p.style == "bald",
        "Bangs": p.style == "fringe" and not s.hat,
        "Black_Hair": p.hair_name == "black" and shows and not gray,
        "Blond_Hair": p.hair_name == "blond" and shows and not gray,
        "Brown_Hair": "brown" in p.hair_name and shows and not gray,
        "Bushy_Eyebrows": p.brow_dense > 1.02,
        "Eyeglasses": bool(s.glasses),
        "Goatee": p.beard == "goatee",
        "Gray_Hair": gray,
        "Heavy_Makeup": s.makeup > 0.6,
        "Male": p.male,
        "Mouth_Slightly_Open": s.mouth_open > 0.15 or s.shows_teeth,
        "Mustache": p.beard in ("mustache", "goatee", "full"),
        "Smiling": s.expression == "happy",
        "Straight_Hair": not wavy and shows,
        "Wavy_Hair": wavy and shows,
        "Wearing_Hat": bool(s.hat),
        "Wearing_Lipstick": s.lipstick > 0.0,
    }


MOODS = {
    "happy": "smiling",
    "neutral": "with a neutral expression",
    "surprised": "looking surprised",
    "sad": "looking sad",
    "stern": "looking stern",
}
BEARDS = {"stubble": "stubble", "mustache": "a moustache", "goatee": "a goatee", "full": "a full beard"}
LENGTHS = {"long": "long ", "fringe": "long ", "medium": "shoulder-length ", "bob": "chin-length ", "buzz": "cropped "}
"""Style -> words for the length of the hair; other styles are short."""
TIED = {"bun": " in a bun", "ponytail": " in a ponytail"}
SKIN = ("very light", "light", "olive", "tan", "brown", "dark")


def caption(person: Person, shot: Shot, formal: bool = False) -> str:
    """An English sentence that describes the image, for the training of the text-image model.

    ``formal``: in the words that lreorg's templates use: a photo of a male or female person with heavy, light or no
    makeup, and "gray" in place of "grey".
    """
    p, s = person, shot
    known = _describe(p, s)
    if formal:
        who = ("male" if p.male else "female") + " person"
    else:
        who = "man" if p.male else "woman"
    stage = "young " if p.age < 30 else "" if p.age < 45 else "middle-aged " if p.age < 62 else "old "
    details = [f"{SKIN[min(int(p.melanin * 6), 5)]} skin", _hair(p, formal)]
    if known["Bangs"]:
        details.append("bangs")
    if p.beard != "none":
        details.append(BEARDS[p.beard])
    if known["Bushy_Eyebrows"]:
        details.append("bushy eyebrows")
    if p.freckles > 0.3:
        details.append("freckles")
    if formal:
        details.append(f"{'heavy' if known['Heavy_Makeup'] else 'light' if s.makeup > 0.0 else 'no'} makeup")
    worn = [
        w for w, on in (("eyeglasses", s.glasses), (f"a {s.hat}", s.hat), ("lipstick", known["Wearing_Lipstick"])) if on
    ]
    wearing = f", wearing {' and '.join(worn)}" if worn else ""
    open_ = ", mouth slightly open" if known["Mouth_Slightly_Open"] else ""
    side = "" if abs(s.yaw) < 12 else ", looking to the right" if s.yaw > 0 else ", looking to the left"
    listed = ", ".join(details[:-1]) + " and " + details[-1]
    return (
        f"A {'photo of a ' if formal else ''}{stage}{who} with {listed}{wearing}, {MOODS[s.expression]}{open_}{side}."
    )


def _hair(p: Person, formal: bool) -> str:
    """Words for the hair: its form, length and color."""
    if p.style == "bald":
        return "a bald head"
    gray = "gray" if formal else "grey"  # both spellings occur in captions, as in published ones
    color = gray if p.gray > 0.5 else p.hair_name
    form = "curly" if p.curl > 0.7 else "wavy" if p.curl > 0.35 else "straight"
    if p.style in TIED:
        return f"{form} {color} hair{TIED[p.style]}"
    if p.recede > RECEDING:
        return f"receding {form} {color} hair"
    return f"{LENGTHS.get(p.style, 'short ')}{form} {color} hair"
