/** How pages are searched: a heading that is the word itself comes first. */
export const SEARCH = {
  searchOptions: { fuzzy: 0.1, prefix: true, boost: { title: 10, titles: 1, text: 1 } },
}
