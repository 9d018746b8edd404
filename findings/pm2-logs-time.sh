#!/usr/bin/env bash
# One would guess: `pm2 logs --timestamp` puts an ISO time behind the name of the process, as `0|shop  | 2025-10-10T13:55:36: line`,
# which is what an application started with `--time` has there.
# What happens: the time comes first, with a hyphen between date and clock and no zone: `2025-10-10-13:55:36 0|shop  | line`. What takes the
# first word for the caller has one caller for each second.
# Version: PM2 7.0.4. Source: Log.stream in lib/API/Log.js of https://github.com/Unitech/pm2.
# Needs npm. Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
export PM2_HOME=$folder/pm2
pm2() { node "$folder/node_modules/pm2/bin/pm2" "$@"; }
reader=
trap '[ -z "$reader" ] || kill "$reader" 2>/dev/null; pm2 kill >/dev/null 2>&1 </dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts pm2@7.0.4
echo "setInterval(() => console.log('203.0.113.7 a line'), 200)" >shop.js
pm2 start shop.js --name shop >/dev/null 2>&1 </dev/null
node node_modules/pm2/bin/pm2 logs --lines 0 --timestamp >out 2>&1 </dev/null &
reader=$!
for _ in $(seq 50); do grep -q 'a line' out && break || sleep 0.2; done
node -p "'pm2 ' + require('./node_modules/pm2/package.json').version"
line=$(grep -m1 'a line' out | sed 's/\x1b\[[0-9;]*m//g')
echo "$line"
if [[ $line =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9:]{8}\ 0\|shop\ +\|\ 203\.0\.113\.7\ a\ line$ ]]; then echo 'as described'; else echo 'CHANGED' && exit 1; fi
