if #KEYS == 1 then
  local @{call}
  @{argument}
  if count == 1 and (clock < 0 or op ~= CONSUME) then
    @{decision}
  end
end
