#!/bin/sh
# Plan the moves of a cluster and make them, once: for a timer. Needs the variables of cluster.env and, if the cluster wants
# one, a superuser's token in PULSAR_TOKEN. docs/apply.md says when to leave the timer off.
#
#   rebalance.sh FOLDER    of the plans and their journals
set -eu
mkdir -p "$1"
cd "$1"
# An apply that was killed may have left Pulsar's shedder off. Names of folders are times, so the last journal is its.
for journal in */plan.json.journal; do :; done
[ ! -e "$journal" ] || lookup apply --recover "$journal"
folder=$(date -u +%Y%m%dT%H%M%SZ)
code=0
# A broker reports its load after 15 minutes at the latest.
lookup plan --wait 16m --max-moves 20 --output "$folder" || code=$?
case $code in
  0) ;;
  # Nothing is worth moving.
  4) rm -r "$folder" && exit 0 ;;
  *) exit "$code" ;;
esac
exec lookup apply "$folder" --freeze-shedding --yes
