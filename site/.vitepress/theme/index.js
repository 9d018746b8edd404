import { useData } from 'vitepress'
import Theme from 'vitepress/theme-without-fonts'
import { watch } from 'vue'
import './style.css'

export default {
  extends: Theme,
  /** A tab that was opened before a new deployment finds none of its pages: their addresses are loaded anew. */
  setup() {
    const { page } = useData()
    watch(page, ({ isNotFound }) => isNotFound && location.reload())
  },
}
