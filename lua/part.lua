-- Part @{number} of a plain whole: a call that charges all of its keys or none, and its share of one key. In the script for such
-- calls (together.lua). Decides whether the part passes, and what is to be written once all do; skipped after a denied part.
if passed == @{number} - 1 then
  local key, now, latest = keys[next_key + @{number}], time, nil
  local fixed = @{held} or @{load}
  local cost, nonce, @{all_numbers} = @{given}
  @{hot_several}
end
