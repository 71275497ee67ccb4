"""Which of CelebA's attributes belong to the inner and which to the outer region of the face: Barattin et al. 2023,
Table 5. (Of CelebA's 40 it leaves out Attractive and Blurry.)"""

INNER = (
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Bags_Under_Eyes", "Big_Lips", "Big_Nose", "Bushy_Eyebrows", "Eyeglasses",
    "Goatee", "Heavy_Makeup", "High_Cheekbones", "Male", "Mouth_Slightly_Open", "Mustache", "Narrow_Eyes", "No_Beard",
    "Pale_Skin", "Pointy_Nose", "Rosy_Cheeks", "Smiling", "Wearing_Lipstick", "Young",
)  # fmt: skip
OUTER = (
    "Bald", "Bangs", "Black_Hair", "Blond_Hair", "Brown_Hair", "Chubby", "Double_Chin", "Gray_Hair", "Oval_Face",
    "Receding_Hairline", "Sideburns", "Straight_Hair", "Wavy_Hair", "Wearing_Earrings", "Wearing_Hat",
    "Wearing_Necklace", "Wearing_Necktie",
)  # fmt: skip
