import * as common from '@nestjs/common'

/** Tested by a pipe that is new in Nest 12, because no way to read a package's version works in ESM, CommonJS and bundles. */
export const IS_NEST_11 = !('StandardSchemaValidationPipe' in common)
