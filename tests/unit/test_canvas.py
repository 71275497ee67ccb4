"""The sheet of a figure: its notes."""

from masquerade.core import canvas

NOTE = "Generated people at 256 x 256 pixels, commit fced57be73c2cf751f0aa7b7be15df26388b3219, whose rows compare. " * 4


def test_notes_stay_on_the_sheet_and_leave_the_axes_their_place_beside_wide_labels():
    with canvas.use_style():
        lefts = []
        for notes in ([], [NOTE]):
            drawing, [[ax]] = canvas.make_sheet(4.0, (2.0,), 1, notes)
            ax.set_ylabel("one\ntwo\nthree\nfour\nfive")
            drawing.draw_without_rendering()
            lefts.append(ax.get_window_extent().x0)
        (text,) = drawing.axes[-1].texts
        box = text.get_window_extent()
        assert box.x0 > 0
        assert box.x1 < drawing.bbox.x1
        assert lefts[0] == lefts[1]
