-- Part @{number} of a plain whole, in the script for calls on several keys (together.lua): whether it passes, and what is to be
-- written then.
if passed == @{number} - 1 then
  local key, now, latest = keys[next_key + @{number}], time, nil
  local fixed = @{held} or @{load}
  local cost, nonce, @{all_numbers} = @{given}
  @{hot_several}
end
