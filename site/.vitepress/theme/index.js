import { h } from 'vue'
import Theme from 'vitepress/theme-without-fonts'
import heroPicture from 'virtual:hero-picture'
import './style.css'

const hero = () => h('div', { class: 'hero-picture', innerHTML: heroPicture })

export default {
  extends: Theme,
  Layout: () => h(Theme.Layout, null, { 'home-hero-image': hero }),
}
