#!/usr/bin/env bash
# What a private SLURM needs, of Debian's packages; nothing where it is all there.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
missing=()
for program in munged slurmctld slurmd slurmdbd mariadbd sbatch sacct; do
    command -v "$program" > /dev/null || missing+=("$program")
done
[ ${#missing[@]} = 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "No ${missing[*]}, and installing them takes root and apt-get: the tests of the cluster are skipped."
    exit 0
fi
echo "Installing slurm-wlm, slurmdbd, munge and mariadb-server for: ${missing[*]}"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    slurm-wlm slurmdbd munge mariadb-server > /dev/null
