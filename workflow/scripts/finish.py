"""At the end of a build, `publish` its runs to MLflow, or `record` its files in git and DVC."""

import logging
import sys

from masquerade.lineage import publishing, tracking, versioning
from masquerade.pipeline import forked_job

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)


def publish() -> None:
    store = tracking.hide_credentials(tracking.find_store())
    try:
        runs = publishing.publish()
    except Exception as error:  # noqa: BLE001 - a store or its network may raise anything
        logging.warning(
            "MLflow: not published to %s (%s). The runs stay in %s; the next build publishes them.",
            store, tracking.explain_failure(error), tracking.RECORDS,
        )  # fmt: skip
    else:
        logging.info("MLflow: %d runs published to %s", runs, store)


def record() -> None:
    try:
        logging.info("DVC: %d jobs recorded", versioning.record_build())
    except versioning.NotRecorded as reason:
        sys.exit(f"DVC: not recorded: {reason}")


if __name__ == "__main__":
    forked_job.delegate()
    {"publish": publish, "record": record}[sys.argv[1]]()
