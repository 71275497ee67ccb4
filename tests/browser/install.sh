#!/usr/bin/env bash
# The Chromium that the test of the report drives, of Debian's packages; nothing where there is one.
set -euo pipefail
for program in chromium chromium-browser google-chrome; do
    command -v "$program" > /dev/null && exit 0
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "The test of the report needs chromium; installing it takes root and apt-get. Not run." >&2
    exit 1
fi
echo "Installing chromium"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null
