"""Two networks learn from one anonymized set of the attackers' people and are tested on unprotected images."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
    __doc__, files=("faces", "anonymized", "state"), words=("method", "variant", "seed")
)


def work(run) -> None:
    from masquerade.backbones.landmarks import LandmarksSettings
    from masquerade.core import face_tables
    from masquerade.core.images import FaceArchive
    from masquerade.params.protocols import UtilitySettings
    from masquerade.pipeline import downstream_utility

    settings = arguments.params.settings("downstream_utility", UtilitySettings)
    frame = downstream_utility.learn_and_test(
        FaceArchive(arguments.faces),
        FaceArchive(arguments.anonymized),
        arguments.params.settings("backbones.landmarks", LandmarksSettings),
        settings,
        arguments.state,
        arguments.seed,
        run.log,
    )
    face_tables.write_table(frame, arguments.outputs[0])
    means = frame[["landmark_error", "found", "overlap"]].astype(float).mean()
    run.log(settings.landmark_steps + settings.detector_steps, means.to_dict())
    arguments.state.unlink(missing_ok=True)


if __name__ == "__main__":
    program.main(f"downstream utility of {arguments.method}/{arguments.variant} seed {arguments.seed}", arguments, work)
