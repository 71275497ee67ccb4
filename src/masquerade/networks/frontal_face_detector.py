"""dlib's HOG face detector (King 2009), unpacked once in a process. The fork server unpacks it for all jobs."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dlib


@cache
def detector() -> "dlib.fhog_object_detector":
    """The detector that ``dlib.get_frontal_face_detector`` gives. dlib unpacks it for half a second at each call."""
    import dlib

    return dlib.get_frontal_face_detector()
