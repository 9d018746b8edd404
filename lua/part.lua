-- A part of a plain whole, which charges all of its keys or none, under list of policies number @{number}. In the script for calls
-- on several keys (together.lua). Decides whether the part passes, and what is to be written once all do.
local now, latest = time, nil
local fixed = @{held} or @{load}
local cost, nonce, @{all_numbers} = @{given}
at = at + @{size}
@{hot_several}
