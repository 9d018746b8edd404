/*
 * `calendarWindow` of core, with a Temporal for the runtimes that have none. Once all have it, core alone is enough.
 */
import { provideTemporal } from '@sluice/core/internal'
import { Temporal } from 'temporal-polyfill'

provideTemporal(Temporal)

export { calendarWindow, type CalendarWindowOptions } from '@sluice/core'
