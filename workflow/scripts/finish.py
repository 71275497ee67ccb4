"""At the end of a build: `publish` its runs to MLflow, or `record` its bytes under DVC."""

import logging
import sys

from masquerade import tracking, versioning

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)


def publish() -> None:
    touched = tracking.publish()
    logging.info("MLflow: %d runs published to %s", touched, tracking.store())


def record() -> None:
    try:
        logging.info("DVC: %d stages recorded", versioning.record())
    except versioning.NotRecorded as reason:
        logging.info("DVC: not recorded: %s", reason)


if __name__ == "__main__":
    {"publish": publish, "record": record}[sys.argv[1]]()
