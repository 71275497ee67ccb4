"""The plain blur of DartBlur: Gaussian, as wide as half of the box of the face. No torch."""

import cv2
import numpy as np


def blurred(images: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Pictures (N, 3, H, W), blurred in their boxes, int (N, 4): left, top, right, bottom.

    Kernels of w / 2 and h / 2 pixels, made odd; the deviation follows from them by OpenCV's rule.
    """
    result = images.copy()
    for image, (left, top, right, bottom) in zip(result, corners, strict=True):
        kernel = tuple(int(side / 2) | 1 for side in (right - left, bottom - top))
        region = np.ascontiguousarray(image[:, top:bottom, left:right].transpose(1, 2, 0))
        image[:, top:bottom, left:right] = cv2.GaussianBlur(region, kernel, 0).transpose(2, 0, 1)
    return result
