@{all_cells} = unpack('<@{cell_formats}', saved)
--@for any bucketed fixed, edited, edit, changed_to = saved_fixed, saved_at, saved_edit, saved_to
--@for any ring call('SET', key, saved_string, 'KEEPTTL')
--@for any slotted near, filled = '', nil
