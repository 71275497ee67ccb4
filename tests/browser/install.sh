#!/usr/bin/env bash
# The Chromium that the test of the report drives, of Debian's packages; nothing where there is one.
set -euo pipefail
for program in chromium chromium-browser google-chrome; do
    command -v "$program" > /dev/null && exit 0
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "No Chromium, and installing it takes root and apt-get: the tests of the report in a browser are skipped."
    exit 0
fi
echo "Installing chromium"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null
