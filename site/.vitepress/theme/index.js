import { h } from 'vue'
import Theme from 'vitepress/theme-without-fonts'
import './style.css'

const hero = () => h('div', { class: 'hero-picture', innerHTML: HERO_PICTURE })

export default {
  extends: Theme,
  Layout: () => h(Theme.Layout, null, { 'home-hero-image': hero }),
}
