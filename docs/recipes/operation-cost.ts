import * as graphql from 'graphql'

/** A valid operation with the values of its variables. */
export interface Operation {
  readonly document: graphql.DocumentNode
  readonly operation: graphql.OperationDefinitionNode
  readonly variables: Readonly<Record<string, unknown>>
  /** The variables as they came. */
  readonly inputs: Readonly<Record<string, unknown>>
}

/** What a list counts for that is asked for no number of items, and the most that any list counts for. */
const USUAL_ITEMS = 20
const MOST_ITEMS = 1000

/**
 * The most that an operation may return: a unit for each field, under every alias, and those inside of a list as often as it
 * may have items (the most of `first`, `last` and `limit`). It is charged before the operation runs.
 */
export function costOf(
  { document, operation, variables }: Omit<Operation, 'inputs'>,
  schema: graphql.GraphQLSchema,
): number {
  const fragments = new Map(
    document.definitions.flatMap((part) =>
      part.kind === graphql.Kind.FRAGMENT_DEFINITION ? [[part.name.value, part] as const] : [],
    ),
  )
  // Each fragment is added up once, however often it is spread: fragments in fragments would take exponential time.
  const known = new Map<graphql.SelectionSetNode, number>()
  const costOfAll = (set: graphql.SelectionSetNode, parent: graphql.GraphQLNamedType): number => {
    const before = known.get(set)
    if (before !== undefined) return before
    const sum = set.selections.reduce((total, selection) => total + costOfOne(selection, parent), 0)
    const capped = Math.min(sum, 2 ** 31)
    known.set(set, capped)
    return capped
  }
  const costOfOne = (selection: graphql.SelectionNode, parent: graphql.GraphQLNamedType): number => {
    if (selection.kind !== graphql.Kind.FIELD) {
      const isSpread = selection.kind === graphql.Kind.FRAGMENT_SPREAD
      const { typeCondition, selectionSet } = isSpread ? fragments.get(selection.name.value)! : selection
      return costOfAll(selectionSet, typeCondition ? schema.getType(typeCondition.name.value)! : parent)
    }
    const field = 'getFields' in parent ? parent.getFields()[selection.name.value] : undefined
    if (!field || !('args' in field) || !selection.selectionSet) return 1
    const items = itemsOf(field, selection, variables)
    return 1 + items * costOfAll(selection.selectionSet, graphql.getNamedType(field.type))
  }
  return costOfAll(operation.selectionSet, schema.getRootType(operation.operation)!)
}

function itemsOf(
  field: graphql.GraphQLField<unknown, unknown>,
  node: graphql.FieldNode,
  variables: Operation['variables'],
): number {
  const isList = graphql.isListType(graphql.getNullableType(field.type))
  try {
    const { first, last, limit } = graphql.getArgumentValues(field, node, variables)
    const asked = [first, last, limit].filter((items) => items !== undefined && items !== null)
    if (asked.length === 0) return isList ? USUAL_ITEMS : 1
    const isCount = asked.every((items) => typeof items === 'number' && items >= 0)
    return isCount ? Math.min(Math.max(...(asked as number[])), MOST_ITEMS) : MOST_ITEMS
  } catch {
    return 1 // null for an argument that must not be: the field will fail
  }
}
