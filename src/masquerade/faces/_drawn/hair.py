"""Hair: a shell around the skull that ends at a hairline. Its strands start at a whorl or a parting."""

from dataclasses import dataclass

import numpy as np

from masquerade.faces._drawn.geometry import CHEEK, LEVELS, WIDEST, Head, lookup, meet, smoothstep
from masquerade.faces._drawn.paint import hair_colour, texture
from masquerade.faces._drawn.shot import Shot


@dataclass
class Layer:
    """Hair at the flat indices ``at``: opacity (N,), emitted light (N, 3), depth towards the camera (N,) in mm."""

    at: np.ndarray
    alpha: np.ndarray
    light: np.ndarray
    depth: np.ndarray


class Hair:
    """The hair of one person in one picture."""

    def __init__(self, head: Head):
        self.head, p = head, head.person
        self.parting = 11.0 * p.part
        self.low = -p.hair_length if p.hair_length > 0 else (-30.0 if not p.male else -18.0)
        self.long = p.style in ("long", "bob")
        self.hangs = p.style not in ("bald", "receding")
        self.widths, self.depths = self._profiles()
        self.azimuths, self.heights = self._hairline()

    def _profiles(self) -> tuple[np.ndarray, np.ndarray]:
        """Half-width and half-depth of the shell at LEVELS, mm."""
        p, head, y = self.head.person, self.head, LEVELS
        top = head.top + p.volume * (1.0 if p.style != "afro" else 1.1)
        side = p.volume * {"long": 0.55, "bob": 0.75, "afro": 1.0, "short": 0.55, "updo": 0.35}.get(p.style, 0.7) + 1.0
        self.top = top
        up = np.clip((y - WIDEST) / (top - WIDEST), 0.0, 1.0)
        width = np.maximum(p.skull_half, p.cheek_half) + side * np.ones_like(y)
        if self.long or p.style == "afro":
            reach = np.clip((WIDEST - y) / (WIDEST - self.low), 0.0, 1.3)
            flare = (7.0 if p.style == "bob" else 5.0) + 9.0 * p.curl
            width = width + flare * np.sin(np.clip(reach, 0, 1) * np.pi * 0.62)
            end = 34.0 if p.style != "afro" else 60.0
            width *= np.sqrt(
                np.clip(1.0 - np.clip((self.low + end - y) / end, 0, 1) ** 2 * (0.5 if self.long else 1.0), 0.02, 1)
            )
        else:
            hug = lookup(head.widths, np.clip(y, -60.0, WIDEST)) + side
            width = np.minimum(width, hug)
        width = width * (1.0 - up**2.45) ** 0.5
        depth = (p.depth + 0.75 * side + 1.5) * (1.0 - up**2.6) ** 0.5
        depth = depth * (1.0 - 0.12 * np.clip((CHEEK - y) / 120.0, 0, 1))
        return np.maximum(width, 0.5).astype(np.float32), np.maximum(depth, 0.5).astype(np.float32)

    def _hairline(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower edge of the hair: azimuths in degrees (0 front, 90 the ear) and its heights there in mm."""
        p = self.head.person
        line = p.hairline
        if self.long:
            curtain = -p.hair_length
            inner = 53.0 if p.style == "bob" else 57.0
            return np.array([0, 14, 30, 42, inner - 5, inner + 1, inner + 8, 180.0]), np.array(
                [line + 4, line, line - 14, line - 36, 2.0, -34.0, curtain, curtain]
            )
        burn = -20.0 if p.male else -6.0
        nape = -14.0 if p.male else -34.0
        if p.style == "afro":
            return np.array([0, 35, 52, 68, 78, 180.0]), np.array([line, line - 2, line - 14, 18.0, self.low, self.low])
        back = 12.0 * min(p.temple, 1.8)
        return np.array([0, 26, 44, 58, 70, 82, 90, 100, 112, 180.0]), np.array(
            [line + 3, line + 1, line - 8 + back, 32 + 0.6 * back, 12.0, burn, burn + 6, 4.0, nape, nape]
        )

    def layer(self, u, v, turn, pixel: float, back: bool, mask: np.ndarray) -> Layer:
        """The hair at those flat camera points (u, v) where ``mask`` is true.

        It is the near wall of the shell, or with ``back`` the far wall, seen from inside.
        """
        p, s = self.head.person, self.head.shot
        at = np.flatnonzero(mask)
        start = -40.0 if back else 60.0
        w, room = meet(u[at], v[at], turn, self.widths, self.depths, start=start, rounds=5, far=back)
        x, y, z = (u[at] * turn[0, i] + v[at] * turn[1, i] + w * turn[2, i] for i in range(3))
        hit = (room > 0.0) & (y < self.top) & (y > self.low - 30.0)
        at, x, y, z, w, room = (value[hit] for value in (at, x, y, z, w, room))
        x, y, z = (value.astype(np.float32) for value in (x, y, z))
        turned = np.degrees(np.arctan2(x, z))
        # the parting moves the front of the hairline to one side
        azimuth = np.abs(turned - self.parting * np.exp(-((turned / 50.0) ** 2)))
        along, index, direction = self._strands(x, y, z)
        fine = texture(index, along, 0.55, p.texture // 29 + s.texture % 97, 0.35 + 0.25 * p.curl)
        locks = texture(index * 0.23, along * 0.5, 0.55, p.texture // 31, 0.7)
        if p.curl > 0.7:
            coils = texture(x, y, 0.9 if p.style == "afro" else 1.5, p.texture // 37, 0.8)
            locks, fine = 0.4 * locks + 0.9 * coils, 0.4 * fine + 0.8 * texture(x, y, 0.5, p.texture // 41, 0.5)
        alpha = self._cover(turned, azimuth, y, room, fine, locks, pixel)
        visible = alpha > 0.02
        at, alpha, w, fine, locks = at[visible], alpha[visible], w[visible], fine[visible], locks[visible]
        colour = hair_colour(p)
        contrast = 1.0 - 0.5 * float(colour.mean() > 0.15)  # light that passes through pale hair fills the gaps
        tone = np.clip(0.95 + contrast * (0.26 * fine + 0.32 * locks), 0.22, 2.2)
        if 0.05 < p.grey < 0.95:
            tone = tone + np.clip(fine - 0.9, 0, 1) * 0.7 * p.grey
        tone *= (0.42 if self.long else 0.75) if back else 1.0
        # the highlight is a band on the crown, broken by strands
        gloss = np.clip(1.0 + 0.7 * fine, 0.1, 2.5) * (0.25 + 0.75 * smoothstep(-5.0, 45.0, y[visible]))
        point = np.stack([x[visible], y[visible], z[visible]], -1) @ turn.T.astype(np.float32)
        strand = direction[visible] @ turn.T.astype(np.float32)
        light = _light(colour * tone[:, None], point, strand, s, 0.7 if back else 1.0, gloss)
        return Layer(at, alpha.astype(np.float32), light.astype(np.float32), w)

    def _cover(self, turned, azimuth, y, room, fine, locks, pixel: float) -> np.ndarray:
        """Opacity: above the hairline, with ragged tips and outline."""
        p, s = self.head.person, self.head.shot
        line = np.interp(azimuth, self.azimuths, self.heights)
        line = line + 3.0 * texture(0.45 * turned, 0.0 * turned, 1.0, p.texture // 43, 1.2)
        ragged = 1.2 * fine + (1.5 + 6.0 * self.long * (line < -40)) * locks
        if s.fringe > 0:
            fall = (22.0 + 1.6 * p.noise_phase) * (1.0 + 0.35 * np.tanh(turned * p.part / 30.0))
            before = np.clip((60.0 - np.abs(turned)) / 14.0, 0.0, 1.0) * s.fringe
            line = line + before * (np.minimum(p.hairline - fall, line) - line)
            ragged = ragged + before * (3.2 * locks + 1.2 * fine)
        hung = np.maximum(s.fringe, line < 20.0) if self.long else s.fringe
        soft = np.maximum(7.0 - 4.5 * hung, pixel)
        alpha = np.clip((y - line + ragged) / soft + 0.5, 0.0, 1.0)
        if p.style == "bald":
            alpha *= np.clip((46.0 - y + ragged) / 14.0, 0, 1) * np.clip((azimuth - 62.0) / 10.0, 0, 1)
        if p.style == "receding":
            alpha *= np.where(azimuth < 70, np.clip(0.8 + 0.25 * fine, 0, 1), np.clip((74.0 - y) / 10.0, 0, 1))
        rim = room * 60.0 + (0.5 + 0.8 * p.curl) * locks + 0.6 * fine
        scalp = 0.9 if p.style in ("cropped", "bald") else 1.0  # the scalp shines through short hair
        return alpha * scalp * np.clip(rim / 1.6 + 0.2, 0.0, 1.0)

    def _strands(self, x, y, z):
        """(mm along a strand, mm across strands, strand direction). Strands are meridians of a whorl or a parting."""
        p, s = self.head.person, self.head.shot
        side = 24.0 * p.part + 2.0 * s.hair_shift if self.long or p.style in ("short", "receding") else 4.0
        if p.style == "updo":
            pole = np.array([0.0, 62.0, -92.0])
        elif p.style in ("short", "receding") and s.fringe == 0:
            pole = np.array([1.2 * side, 80.0, 62.0])
        elif self.long:
            pole = np.array([side, 96.0, 50.0])
        else:
            pole = np.array([side, 104.0, 12.0])
        dx, dy, dz = x - pole[0], y - pole[1], (z - pole[2]) * 0.8
        # below the widest level the strands hang: index by azimuth alone
        hang = smoothstep(20.0, -30.0, y)
        angle = np.arctan2(dx, dz) * (1 - hang) + np.arctan2(x, z) * hang
        along = np.sqrt(dx**2 + dy**2 + dz**2)
        wave = 4.5 * p.curl * np.sin(along / (7.0 + 6.0 * (1 - p.curl)) + 2.0 * np.sin(angle * 5.0))
        index = angle * 62.0 + wave * (0.25 + 0.75 * smoothstep(20.0, 80.0, along))
        direction = np.stack([dx * (1 - hang), dy - 40.0 * hang, dz * (1 - hang)], -1) / np.maximum(along, 1.0)[:, None]
        return 0.16 * along, index, direction


def _light(colour, point, strand, shot: Shot, strength: float, gloss) -> np.ndarray:
    """Diffuse light, and the highlight of strands after Kajiya and Kay (1989): largest across the half-vector."""
    strand = strand / np.maximum(np.linalg.norm(strand, axis=-1, keepdims=True), 1e-6)
    normal = point / np.maximum(np.linalg.norm(point, axis=-1, keepdims=True), 1e-6)
    key = shot.light.astype(np.float32)
    half = key + np.array([0, 0, 1.0], np.float32)
    half /= np.linalg.norm(half)
    lambert = np.clip(normal @ key * 0.65 + 0.35, 0.0, 1.0)
    along = strand @ half
    shine = np.maximum(1.0 - along * along, 0.0) ** 18 * np.clip(normal @ half, 0, 1) ** 3
    tone = colour.mean(-1)
    body = colour * (shot.fill * 0.85 + shot.key * 1.05 * lambert * strength)[:, None]
    gleam = 0.085 * gloss * shine * shot.key * strength * (0.6 + 3.0 * tone)
    return body + gleam[:, None] * (0.5 + 0.5 * colour / np.maximum(tone, 1e-4)[:, None])
