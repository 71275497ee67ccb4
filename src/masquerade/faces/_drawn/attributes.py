"""The attributes of a drawn face, under CelebA's names, and its caption."""

import numpy as np

from masquerade.core import annotations
from masquerade.faces._drawn.person import Person
from masquerade.faces._drawn.shot import Shot

NOT_DRAWN = ("Sideburns", "Wearing_Earrings", "Wearing_Necklace", "Wearing_Necktie")
INNER = annotations.INNER
OUTER = tuple(name for name in annotations.OUTER if name not in NOT_DRAWN)
NAMES = tuple(sorted(INNER + OUTER))


def attributes(person: Person, shot: Shot) -> dict[str, bool]:
    """CelebA's attribute -> whether the face has it, for the attributes that are drawn.

    Each is a threshold on parameters of the person and the shot, in the units of those parameters.
    """
    p, s = person, shot
    covered = bool(s.hat)
    shows = p.style != "bald" and not (covered and p.style in ("receding", "cropped"))
    grey = p.grey > 0.5 and shows
    wavy = p.curl > 0.35
    return {
        "5_o_Clock_Shadow": p.stubble > 0.4 and p.beard < 0.5,
        "Arched_Eyebrows": p.brow_arch > 4.2,
        "Bags_Under_Eyes": p.eye_bags > 0.5,
        "Bald": p.style == "bald",
        "Bangs": s.fringe > 0.5 and not covered,
        "Big_Lips": p.upper_lip + p.lower_lip > 14.0,
        "Big_Nose": p.nose_half > 18.5,
        "Black_Hair": p.hair_name == "black" and shows and not grey,
        "Blond_Hair": p.hair_name == "blond" and shows and not grey,
        "Brown_Hair": "brown" in p.hair_name and shows and not grey,
        "Bushy_Eyebrows": p.brow_thick > 3.4 and p.brow_dense > 0.7,
        "Chubby": p.build > 0.55,
        "Double_Chin": p.double_chin > 0.3,
        "Eyeglasses": bool(s.glasses),
        "Goatee": p.goatee > 0.5 and p.beard < 0.5,
        "Gray_Hair": grey,
        "Heavy_Makeup": s.makeup > 0.6,
        "High_Cheekbones": p.cheekbone + 1.5 * s.smile > 3.8,
        "Male": p.male,
        "Mouth_Slightly_Open": s.mouth_open > 0.12 or s.shows_teeth,
        "Mustache": p.moustache > 0.5,
        "Narrow_Eyes": (p.lid_upper + p.lid_lower) * s.eye_open < 8.8,
        "No_Beard": max(p.beard, p.goatee, p.moustache) < 0.5 and p.stubble <= 0.4,
        "Oval_Face": p.jaw_square < 2.3 and p.cheek_half < 72.0,
        "Pale_Skin": p.tone < 0.1,
        "Pointy_Nose": p.nose_half < 15.5 and p.nose_tip > 2.4,
        "Receding_Hairline": p.style == "receding" and not covered,
        "Rosy_Cheeks": p.rosy > 0.75 or s.makeup > 0.75,
        "Smiling": s.smile > 0.4,
        "Straight_Hair": not wavy and shows,
        "Wavy_Hair": wavy and shows,
        "Wearing_Hat": covered,
        "Wearing_Lipstick": s.lipstick > 0.0,
        "Young": p.age < 40.0,
    }


def caption(person: Person, shot: Shot, formal: bool = False) -> str:
    """An English sentence that describes the picture, for the training of the text-image model.

    ``formal``: in the words that lreorg's templates use: a photo of a male or female person with heavy, light or no
    makeup, and "gray" for "grey".
    """
    p, s = person, shot
    known = attributes(p, s)
    if formal:
        who = ("male" if p.male else "female") + " person"
    else:
        who = ("boy" if p.male else "girl") if p.age < 16 else ("man" if p.male else "woman")
    if p.age < 16:
        stage = "young " if formal else ""
    else:
        stage = "young " if p.age < 30 else "" if p.age < 45 else "middle-aged " if p.age < 62 else "old "
    skin = ("very light", "light", "olive", "tan", "brown", "dark")[int(np.clip(p.tone * 6, 0, 5))]
    if known["Bald"]:
        hair = "a bald head"
    else:
        colour = ("gray" if formal else "grey") if p.grey > 0.5 else p.hair_name
        form = "curly" if p.curl > 0.7 else "wavy" if known["Wavy_Hair"] else "straight"
        length = {"long": "long ", "bob": "chin-length ", "cropped": "cropped ", "updo": "tied-back "}.get(
            p.style, "short "
        )
        hair = f"{length}{form} {colour} hair" if p.style != "receding" else f"receding {colour} hair"
    details = [f"{skin} skin", hair]
    if known["Bangs"]:
        details.append("bangs")
    if p.beard > 0.5:
        details.append("a full beard")
    elif known["Goatee"]:
        details.append("a goatee")
    elif known["Mustache"]:
        details.append("a moustache")
    elif known["5_o_Clock_Shadow"]:
        details.append("stubble")
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
    mood = {"happy": "smiling", "neutral": "with a neutral expression", "surprised": "looking surprised",
            "sad": "looking sad", "stern": "looking stern"}[s.expression]  # fmt: skip
    open_ = ", mouth slightly open" if known["Mouth_Slightly_Open"] else ""
    side = "" if abs(s.yaw) < 12 else ", looking to the right" if s.yaw > 0 else ", looking to the left"
    listed = ", ".join(details[:-1]) + " and " + details[-1]
    return f"A {'photo of a ' if formal else ''}{stage}{who} with {listed}{wearing}, {mood}{open_}{side}."
