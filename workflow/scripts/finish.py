"""At the end of a build: publish its runs to MLflow and, with --record, put its bytes under DVC."""

import logging
import sys

from masquerade import tracking, versioning

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)

if __name__ == "__main__":
    touched = tracking.publish()
    logging.info("MLflow: %d runs published to %s", touched, tracking.store())
    if "--record" in sys.argv:
        try:
            logging.info("DVC: %d stages recorded", versioning.record())
        except versioning.NotRecorded as reason:
            logging.info("DVC: not recorded: %s", reason)
