import { ConfigurableModuleBuilder, type DynamicModule, Global, Module } from '@nestjs/common'
import { DiscoveryModule } from '@nestjs/core'
import { limiterToken } from './decorators.js'
import { RateLimitGuard } from './guard.js'
import { Limits, MODULE_OPTIONS } from './limits.js'
import { Nest11Gateways } from './nest-11.js'
import type { NamedLimiterOptions, RateLimitModuleOptions } from './options.js'

const OWN = [Limits, RateLimitGuard, Nest11Gateways]

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<RateLimitModuleOptions>({
  optionsInjectionToken: MODULE_OPTIONS,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRateLimitOptions')
  .build()

/**
 * `forRoot` or `forRootAsync` once, in the root module; `forFeature` where limiters are to be injected. Limiters share
 * the store of `forRoot` (default: a memoryStore), and are closed with it when the application is.
 */
@Global()
@Module({ imports: [DiscoveryModule], providers: OWN, exports: OWN })
export class RateLimitModule extends ConfigurableModuleClass {
  /** Limiters to inject with `@InjectLimiter(name)`, and to share as `@RateLimit({ limiter: name })`. */
  static forFeature(limiters: readonly NamedLimiterOptions[]): DynamicModule {
    const providers = limiters.map((options) => ({
      provide: limiterToken(options.name),
      useFactory: (limits: Limits) => limits.define(options),
      inject: [Limits],
    }))
    // Not this class, which would bring a guard and limits of its own.
    return { module: class RateLimitFeature {}, providers, exports: providers }
  }
}
