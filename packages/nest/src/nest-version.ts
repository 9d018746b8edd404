import * as common from '@nestjs/common'

/** Nest 12 has the pipe, and no version before. A package's version cannot be read alike by ESM, CommonJS and bundlers. */
export const IS_NEST_11 = !('StandardSchemaValidationPipe' in common)
