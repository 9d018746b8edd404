@{all_cells} = unpack('<@{cell_formats}', saved)
--@for any bucketed fixed, edit_offset, edit_bytes, changed_to = saved_fixed, saved_edit_offset, saved_edit_bytes, saved_to
--@for any ring call('SET', key, saved_string, 'KEEPTTL')
--@for any slotted near, filled = '', nil
